# A node is lost with its tasks, they start elsewhere; the node comes back.
node n1 cpu=4 gpu=0
submit train worker=2x2c0g@9000
submit train worker=2x2c0g
run 1
run 2
node n2 cpu=4 gpu=0
lost n1
run 3
run 4
node n1 cpu=4 gpu=0 bad
node n1 cpu=4 gpu=0
stop 1
stop 2
exit 3 143
exit 4 143
pardon n1
