"""The controller's HTTP API: who asks, what they may, and the verbs. It decides nothing."""
