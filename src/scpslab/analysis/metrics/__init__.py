"""Metrics: base.py says what a family of them is; data_flows.py lists them in the order of their columns in results.csv
and says where the packets of a workload are, whose kind registers its families in its metrics.py.
"""
