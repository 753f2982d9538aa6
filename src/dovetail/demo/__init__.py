"""The live half of `dovetail demo`: real training jobs on this machine under two policies.

Starts controllers, has jobs run and reports what was measured. Shows nothing itself.
"""
