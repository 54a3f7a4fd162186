"""Programs that odefit is compared with, and odefit beside them."""
