# Tasks that start one by one, are scaled up and down; a debugging job is held.
node n1 cpu=4 gpu=0
submit serve tasks worker=3x1c0g
run 1
run 2
run 3
scale 1 0 6
scale 1 0 2
exit 3 143
exit 4 143
submit look debug worker=1x1c0g
run 5
exit 5 1
release 2
stop 1
exit 1 143
exit 2 143
delete 1
