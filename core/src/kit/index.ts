/** What the areas and adapters share, beside the grammar: threads for work from outside, and checks by JSON Schemas from outside. */
export { type BoundSchema, boundSchemas, type JsonSchema, type SchemaFaultPlace } from "./json-schema/bound-schema.ts";
export { type CheckJob, type CheckResult, faultText, type SchemaFault } from "./json-schema/check-json.ts";
export { checkJsonNow } from "./json-schema/check-json.ts";
export { type CompileOptions, compileSchema, SchemaInvalid } from "./json-schema/compile-schema.ts";
export { type CheckedJson, type SchemaCheckOptions, SchemaChecks } from "./json-schema/schema-checks.ts";
export { KEYWORDS, NAMED_SCHEMAS, SCHEMA, SCHEMAS } from "./json-schema/subschemas.ts";
export { type SchemaPath, type Subschema, subschemas } from "./json-schema/subschemas.ts";
export { JobPool, type JobPoolOptions, PoolBusy } from "./job-pool.ts";
export { JobOutOfMemory, JobOverran, type JobRun, JobThread, type JobThreadOptions, ThreadCrashed } from "./job-thread.ts";
export { type ChangedList, LIST_READERS, ListChanges, type ListLook } from "./list-changes.ts";
export { idempotencyKeyOf } from "./idempotency-key.ts";
export { preferredWait, preferredWaitMs, waitApplied, type WaitingCall } from "./preferred-wait.ts";
export { registerProcess, type SharedPorts, sharedPorts } from "./other-processes.ts";
export { listenForJobs } from "./listen-for-jobs.ts";
export { sealAgain, type SealedCollection, type SealedRecord } from "./seal-again.ts";
export { undefinedAtConflict } from "./store-calls.ts";
export { type Days, daysOf } from "./zone-days.ts";
export { withoutByteOrderMark } from "./text.ts";
