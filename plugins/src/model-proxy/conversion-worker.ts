import { listenForJobs } from "@portico/core/kit";
import { handedOver } from "@portico/core/model-protocols";
import { runConversion } from "./conversion-job.ts";

// Runs in a worker thread, for large bodies: parsing them on the event loop would delay all other callers.
listenForJobs(runConversion, (result) =>
  "request" in result ? handedOver(result.request.body) : "changed" in result ? handedOver(result.changed) : [],
);
