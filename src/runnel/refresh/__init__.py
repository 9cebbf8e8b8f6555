"""One refresh of one table: plan, execute, commit. Also verifying and compacting."""
