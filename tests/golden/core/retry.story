# What is retried, on whose account: transient, conflict with a pause, the user's own, permanent.
node n1 cpu=8 gpu=0
submit train retry=1 worker=1x1c0g
run 1
exit 1 3 transient
run 2
exit 2 4 conflict
wait 901
run 3
exit 3 1
run 4
exit 4 1
submit wrong retry=5 worker=1x1c0g
exit 5 2 permanent
