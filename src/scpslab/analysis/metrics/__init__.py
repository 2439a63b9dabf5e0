"""Metrics: base.py says what a family of them is, families.py lists them in the order of their columns in results.csv.

A kind of workload has its families in `KIND` of its metrics.py; data_flows.py says where its packets are.
"""
