"""A file of measurements: the columns of network rows, and one sound row."""

from __future__ import annotations

HEAD = "source,network,hardware,stack,task,batch,precision,threads,devices,clock_mhz,metric,value,split"
ROW = "me,alexnet,gtx_1080,caffe-cudnn5.1,inference,16,fp32,,1,,latency_s,0.01,calibrate"
