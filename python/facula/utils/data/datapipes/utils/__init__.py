"""What datapipes of files share."""
