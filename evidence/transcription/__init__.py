"""The study of Fernandez de Dios et al. of direct transcription."""
