"""The same program under gradcli and under torch: how long, and how much memory."""
