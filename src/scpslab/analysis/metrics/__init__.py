"""Metrics: base.py says what a family of them is, families.py lists them in the order of their columns in results.csv.

A kind of workload registers its families in its metrics.py; data_flows.py says where its packets are.
"""
