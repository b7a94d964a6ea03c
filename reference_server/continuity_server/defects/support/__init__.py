"""What several defects need. There is no defect here."""
