"""Nexmark: queries over an auction site's persons, auctions and bids, kept as stream tables."""
