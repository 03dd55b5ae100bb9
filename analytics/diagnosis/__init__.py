"""Plain-language diagnosis of a job's I/O: findings with evidence, advice, confidence, and what is unknown."""

from mpiio_ext.analytics.diagnosis.diagnose import diagnose
from mpiio_ext.analytics.diagnosis.limits import Limits
from mpiio_ext.analytics.diagnosis.model import Advice, Diagnosis, Evidence, Finding

__all__ = ["Advice", "Diagnosis", "Evidence", "Finding", "Limits", "diagnose"]
