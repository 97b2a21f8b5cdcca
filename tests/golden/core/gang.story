# A gang waits whole, a smaller job passes, and the gang starts when the first ends.
node n1 cpu=8 gpu=4
submit hello worker=1x1c2g
submit train worker=2x1c2g ps=1x1c0g
submit small worker=1x1c1g
run 1
exit 1 0
run 2
exit 2 0
run 3
run 4
run 5
exit 3 0
exit 4 0
exit 5 0
