"""The kinds of workload that can be generated; `dovetail.traces.generator` lists them."""
