# An urgent job ends an opportunistic one, which is told first and comes back uncounted.
policy hived
node n1 cpu=8 gpu=4
submit cheap prio=-1 worker=1x1c4g
run 1
submit dear prio=100 worker=1x1c4g
exit 1 143
run 2
exit 2 0
run 3
exit 3 0
