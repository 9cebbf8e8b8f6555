"""The real thing for a while: a daemon that is killed, writers, readers that check what they see."""
