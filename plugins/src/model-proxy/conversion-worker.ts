import { listenForJobs } from "@portico/core/kit";
import { handedOver } from "@portico/core/model-protocols";
import { type ConversionJob, runConversion } from "./conversion-job.ts";

// Runs in a worker thread, for large bodies: parsing them on the event loop would delay all other callers.
listenForJobs(
  (job: ConversionJob) => runConversion(job, true),
  (result) =>
    "request" in result ? handedOver(result.request.body, true) : "changed" in result ? handedOver(result.changed, true) : [],
);
