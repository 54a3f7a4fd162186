"""What the equations alone tell: are they rational, what do they let data determine."""
