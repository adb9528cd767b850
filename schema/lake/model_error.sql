-- model_error: how far the predictions are from what was measured, by the resource that they call the bottleneck, over all kernels. One row a resource, kind and method.
-- error is measured over predicted, minus 1: above 0 the kernel is slower than its budget. rms_error: the root of the mean square. worst_capture: where it is largest in size.
WITH ranked AS (
  SELECT resource, kind, method, kernel, capture_id, prediction_id, error, ROW_NUMBER() OVER (PARTITION BY resource, kind, method ORDER BY ABS(error) DESC, capture_id, prediction_id) AS nth
  FROM model_pair
)
SELECT resource, kind, method, COUNT(*) AS pairs, COUNT(DISTINCT kernel) AS kernels, COUNT(DISTINCT capture_id) AS captures, AVG(error) AS mean_error, MIN(error) AS least_error, MAX(error) AS most_error,
       SQRT(AVG(error * error)) AS rms_error, MIN(CASE WHEN nth = 1 THEN capture_id END) AS worst_capture
FROM ranked
GROUP BY resource, kind, method
ORDER BY rms_error DESC, resource, kind, method
