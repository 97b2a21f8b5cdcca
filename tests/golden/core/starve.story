# A starving gang gets room: endless jobs wait behind it, short ones pass.
node n1 cpu=8 gpu=4
submit long limit=3600 worker=1x1c2g
submit rest worker=1x1c2g
submit big worker=1x1c4g
wait 601
exit 2 0
submit endless worker=1x1c2g
submit short limit=60 worker=1x1c2g
exit 3 0
exit 1 0
exit 4 0
