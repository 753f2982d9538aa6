"""The engines that run jobs: this machine, or a fake for tests. One protocol for all of them."""
