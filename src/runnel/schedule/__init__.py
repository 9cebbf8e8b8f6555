"""Who is refreshed, in what order, to which common instant."""
