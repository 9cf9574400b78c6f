// One file: the calls of the area, with each path, shape and error, as a client sees them.
import {
  defineContract,
  jsonObject,
  maxCharacters,
  modelUsage,
  readParameters,
  record,
  reply,
  scheduleAnswer,
} from "@portico/core/contract";
import * as v from "valibot";
import { workflowEnvelope, workflowErrors } from "./contracts/errors.ts";
import { CALL_BYTES, COMMENT_LENGTH, IDEMPOTENCY_KEY_LENGTH, TRIGGER_BYTES } from "./contracts/limits.ts";
import {
  countedRuns,
  countQuery,
  ownership,
  runError,
  runSummary,
  status,
  foundRuns,
  searchQuery,
} from "./contracts/search-contract.ts";

const text = v.string();
const json = v.unknown();
export { isTerminal, RUN_STATUSES, type RunStatus } from "./contracts/run-state.ts";

/** A query parameter as received. A repeated parameter is a list, which the handler refuses. */
const parameter = v.optional(v.union([text, v.array(text)]));

const notification = {
  status: v.picklist(["sent", "failed"]),
  error: v.optional(v.object({ code: text, message: text })),
};

const gate = v.object({
  nodeId: text,
  title: text,
  message: text,
  form: v.optional(record(text, json)),
  sensitive: v.optional(v.union([v.literal(true), v.array(text)])),
  requestedAt: text,
  expiresAt: v.optional(text),
  /** Of a gate with `notify`, once people were told, or could not be told. */
  notification: v.optional(v.object(notification)),
});

/** Specification 2.3. */
const workflowSummary = v.object({
  id: text,
  name: text,
  description: text,
  creator: text,
  nodeCount: v.number(),
  dslPath: text,
  lastRun: v.optional(
    v.object({
      runId: text,
      status,
      taskBoardBound: v.boolean(),
      completedAt: v.optional(text),
      totalDurationMs: v.optional(v.number()),
    }),
  ),
});

/** Whether this service writes definitions (an extension). */
const editable = v.boolean();

/** A deployed file that cannot be used: its first problems, which contain no values, and the number of all problems. */
const brokenDefinition = v.object({
  dslPath: text,
  problemCount: v.number(),
  problems: v.array(v.object({ line: v.number(), column: v.number(), message: text })),
});

/** The public view of a definition: its parameters and its graph. */
export const workflowDefinition = v.object({
  id: text,
  name: text,
  description: text,
  creator: text,
  nodeCount: v.number(),
  dslPath: text,
  parameters: record(text, json),
  timeoutMs: v.number(),
  /** How many runs go on at the same time. `key`: the template, if the limit applies to runs with the same key. */
  concurrency: v.optional(
    v.object({ limit: v.number(), key: v.optional(text), overflow: v.picklist(["queue", "refuse", "replace"]) }),
  ),
  /** Which triggers share a run. `key`: the template, if those with the same key do. */
  debounce: v.optional(v.object({ delayMs: v.number(), maxWaitMs: v.number(), key: v.optional(text) })),
  /** The fields by which runs can be found. */
  search: v.optional(v.object({ parameters: v.array(text), outputs: v.array(text) })),
  nodes: v.array(
    v.object({
      /** `ID`, or `ID.CHILD` inside a `map` or `loop` node. History names such nodes `ID[0].CHILD`. */
      id: text,
      parent: v.optional(text),
      type: text,
      name: v.optional(text),
      needs: v.array(v.object({ node: text, case: v.optional(text) })),
      cases: v.optional(v.array(text)),
      conditional: v.boolean(),
      /** It runs when its needs have ended, whatever their end. */
      always: v.optional(v.literal(true)),
      onError: v.picklist(["fail", "continue"]),
    }),
  ),
  /** The node that is executed when a run has failed. In history, its id is `onFailure`. */
  onFailure: v.optional(v.object({ type: text, name: v.optional(text) })),
});

/** A version of a definition: its hash, its use by readable runs, and its differences from the version before. */
const definitionVersion = v.object({
  version: text,
  isDeployed: v.boolean(),
  runCount: v.number(),
  firstUsedAt: v.optional(text),
  lastUsedAt: v.optional(text),
  /** The first differences, by JSONPath. Absent for the oldest version. */
  changes: v.optional(v.array(v.object({ path: text, change: v.picklist(["added", "removed", "changed"]) }))),
  changeCount: v.optional(v.number()),
});

const nodeResult = v.object({
  type: text,
  name: v.optional(text),
  status: v.picklist(["completed", "failed", "skipped", "cancelled", "running", "waiting"]),
  /** Taken over from the run that this run resumes. */
  reused: v.optional(v.literal(true)),
  inputs: v.optional(json),
  outputs: v.optional(json),
  error: v.optional(
    v.object({
      code: text,
      message: text,
      /** What the service answered, of an `http` node. */
      status: v.optional(v.number()),
      body: v.optional(json),
      /** Whether `body` is only the beginning of the text of a longer body. */
      bodyTruncated: v.optional(v.boolean()),
      /** The node inside of a `map` or `loop` that failed. */
      nodeId: v.optional(text),
    }),
  ),
  attempts: v.number(),
  startedAt: v.optional(text),
  completedAt: v.optional(text),
  durationMs: v.optional(v.number()),
  /** Of a callback that waits: until when it takes its event. */
  waitsUntil: v.optional(text),
});

const runFile = v.object({
  /** ID of the file, as outputs name it. */
  file: text,
  name: text,
  /** As its sender declared it. */
  mediaType: text,
  size: v.number(),
  sha256: text,
  createdAt: text,
});

const runDetail = v.object({
  workflowId: text,
  runId: text,
  status,
  startedAt: text,
  taskBoardBound: v.boolean(),
  /** It waits for further triggers, or until an earlier run of its workflow ends. */
  queued: v.optional(v.literal(true)),
  completedAt: v.optional(text),
  totalDurationMs: v.optional(v.number()),
  nodeResults: v.optional(record(text, nodeResult)),
  finalOutputs: v.optional(json),
  error: v.optional(runError),
  usage: v.optional(modelUsage),
  humanGate: v.optional(gate),
  /** Secrets are masked. */
  parameters: v.optional(json),
  /** The run can be resumed. */
  resumable: v.optional(v.literal(true)),
  /** The run that this run resumes, and the run that resumes this run. */
  resumes: v.optional(text),
  resumedBy: v.optional(text),
  /** The files of the run. */
  files: v.optional(v.array(runFile)),
  ...ownership,
});

/** Gates that wait, of several runs. */
const waitingGates = v.object({
  gates: v.array(v.object({ workflowId: text, workflowName: text, runId: text, startedAt: text, ...ownership, gate })),
  /** The `cursor` of the next page. A page may have fewer runs than its limit, even 0, although there is a next page. */
  next: v.optional(text),
});

/**
 * The answer of a call that starts a run. With `Prefer: wait=SECONDS` (an extension): the run, if it has ended in time, or else where it is
 * read.
 */
const startedOrEnded = <E extends v.ObjectEntries>(more: E) =>
  reply.json(
    v.union([
      v.object({
        ...{ runId: text, workflowId: text, status: v.literal("started"), location: v.optional(text) },
        ...more,
      }),
      runDetail,
    ]),
  );

/** What a run that resumes another does. Ids are those of nodes outside of `map` and `loop`, except `done`. */
const resumePlan = v.object({
  /** Hash of the definition with which the new run starts. */
  version: text,
  /** Finished nodes whose results it takes over. */
  kept: v.array(text),
  /** Nodes that had begun, and are executed again or go on. */
  repeated: v.array(text),
  /** Nodes of which the definition, or a parameter that they read, differs. */
  changed: v.array(text),
  added: v.array(text),
  removed: v.array(text),
  /** The node that counts as done. */
  done: v.optional(text),
});

/** Events of a run (specification 6.1, payloads of workflow.md). */
const runEvents = {
  "workflow:started": v.object({ workflowId: text, runId: text, name: text, nodeCount: v.number() }),
  "workflow:node_start": v.object({ runId: text, nodeId: text, type: text, name: v.optional(text) }),
  "workflow:node_complete": v.object({
    runId: text,
    nodeId: text,
    inputs: v.optional(json),
    outputs: v.optional(json),
    durationMs: v.number(),
  }),
  "workflow:node_error": v.object({ runId: text, nodeId: text, error: v.object({ code: text, message: text }) }),
  "workflow:human_gate": v.object({ runId: text, ...gate.entries }),
  /** A callback waits for its event (an extension). */
  "workflow:callback": v.object({ runId: text, nodeId: text, attempt: v.number(), requestedAt: text, expiresAt: text }),
  "workflow:gate_notification": v.object({ runId: text, nodeId: text, ...notification }),
  "workflow:complete": v.object({ runId: text, workflowId: text, status, finalOutputs: v.optional(json) }),
  "workflow:error": v.object({ runId: text, error: v.object({ code: text, message: text }), nodeId: v.optional(text) }),
};

const {
  unauthorized,
  workflow_service_not_initialized,
  store_unavailable,
  workflow_not_found,
  run_not_found,
  unknown_schedule,
  workflow_owner_fenced,
  run_not_reserved,
  execution_grant_invalid,
  task_scope_forbidden,
  invalid_request,
  invalid_parameters,
} = workflowErrors;
const guarded = { unauthorized, workflow_service_not_initialized };
const reading = { ...guarded, store_unavailable };
/** Of definitions with `concurrency`. */
const beyond = { workflow_busy: workflowErrors.workflow_busy, workflow_queue_full: workflowErrors.workflow_queue_full };
const starting = { ...reading, ...beyond, workflow_not_found, workflow_owner_fenced, run_not_reserved, invalid_parameters };
const keyed = {
  idempotency_key_invalid: workflowErrors.idempotency_key_invalid,
  idempotency_key_reused: workflowErrors.idempotency_key_reused,
};
const byRun = v.strictObject({ id: text, runId: text });
const scope = v.object({ boardId: parameter, workflowBindingId: parameter, taskId: parameter });
const scoped = { ...reading, workflow_not_found, task_scope_forbidden, invalid_request };
const granted = { ...reading, execution_grant_invalid, run_not_found, workflow_owner_fenced, invalid_request };
const accepted = v.object({ runId: text, accepted: v.literal(true) });
const retired = { ...guarded, definition_endpoint_retired: workflowErrors.definition_endpoint_retired };

const bySchedule = v.strictObject({ id: text, name: text });
const ofSchedule = { ...reading, unknown_schedule, schedules_unavailable: workflowErrors.schedules_unavailable };

/** A schedule of a deployed definition. It has the fields of agents' schedules. */
const schedule = v.object({
  workflowId: text,
  name: text,
  ...scheduleAnswer,
  /** The newest planned time that started nothing, because the workflow's `concurrency` refused it: ISO 8601, and the code of the error. */
  lastRefused: v.optional(v.object({ plannedAt: text, code: text })),
});

/** The workflow service (specification 4.2; open points 8). */
export const workflowServiceContract = defineContract(
  {
    surface: "workflow",
    auth: "service",
    envelope: workflowEnvelope,
    faults: {
      invalid_request: workflowErrors.invalid_request,
      invalid_json: workflowErrors.invalid_json,
      body_too_large: workflowErrors.body_too_large,
      unsupported_media_type: workflowErrors.unsupported_media_type,
      origin_not_allowed: workflowErrors.origin_not_allowed,
    },
  },
  {
    workflows: {
      method: "GET",
      path: "/api/workflows",
      summary: "List the deployed workflows, and the unusable files",
      success: reply.json(v.object({ workflows: v.array(workflowSummary), broken: v.array(brokenDefinition), editable })),
      errors: reading,
    },
    definition: {
      method: "GET",
      path: "/api/workflow/:id/definition",
      summary: "Read the parameters of a deployed workflow, and the graph of its nodes",
      query: readParameters({}),
      params: v.strictObject({ id: text }),
      success: reply.json(v.object({ ...workflowDefinition.entries, editable })),
      errors: { ...reading, workflow_not_found },
    },
    versions: {
      method: "GET",
      path: "/api/workflow/:id/versions",
      summary: "List the versions of a definition that runs used, and what changed, newest first",
      query: readParameters({}),
      params: v.strictObject({ id: text }),
      success: reply.json(v.object({ versions: v.array(definitionVersion) })),
      errors: { ...reading, workflow_not_found },
    },
    trigger: {
      method: "POST",
      path: "/api/workflow/webhook",
      summary: "Trigger a workflow; the optional body contains its parameters",
      query: v.object({ id: parameter }),
      body: v.optional(jsonObject, {}),
      bodyAs: "text",
      bodyLimit: TRIGGER_BYTES,
      waits: true,
      takesKey: true,
      success: startedOrEnded({ duplicate: v.optional(v.literal(true)), debounced: v.optional(v.literal(true)) }),
      errors: { ...starting, ...keyed, id_required: workflowErrors.id_required },
    },
    events: {
      method: "GET",
      path: "/api/workflow/events",
      summary: "Follow a run of this process, from its first event or after the `Last-Event-ID`",
      query: v.object({ runId: parameter }),
      success: reply.events(runEvents),
      errors: { ...reading, run_not_found, run_id_required: workflowErrors.run_id_required },
    },
    runs: {
      method: "GET",
      path: "/api/workflow/:id/runs",
      summary: "List a workflow's runs, newest first",
      params: v.strictObject({ id: text }),
      query: scope,
      success: reply.json(v.object({ runs: v.array(runSummary) })),
      errors: scoped,
    },
    searchRuns: {
      method: "GET",
      path: "/api/workflow/runs/search",
      summary: "Find runs by workflow, status, user, time, fields, errors and version, newest first",
      query: searchQuery,
      success: reply.json(foundRuns),
      errors: { ...reading, workflow_not_found, invalid_request },
    },
    countRuns: {
      method: "GET",
      path: "/api/workflow/runs/counts",
      summary: "Count the runs that a search finds, by status, and by workflow and cause",
      query: countQuery,
      success: reply.json(countedRuns),
      errors: { ...reading, workflow_not_found, invalid_request },
    },
    gates: {
      method: "GET",
      path: "/api/workflow/gates",
      summary: "List the gates that wait for a decision, with what their forms need, newest run first",
      query: v.pick(searchQuery, ["limit", "cursor"]),
      success: reply.json(waitingGates),
      errors: { ...reading, invalid_request },
    },
    gateChanges: {
      method: "GET",
      path: "/api/workflow/gates/events",
      summary:
        "Follow which gates wait: the number now, unless the `Last-Event-ID` is that of the present list, and after each change",
      query: readParameters({}),
      success: reply.events({
        /** The gates of the first page of 200 runs. Read the list to see them. */
        "workflow:gates_changed": v.object({ waiting: v.number(), hasMore: v.boolean() }),
      }),
      errors: { ...reading, too_many_readers: workflowErrors.too_many_readers },
    },
    run: {
      method: "GET",
      path: "/api/workflow/:id/runs/:runId",
      summary: "Read a run with its nodes, outputs and open gate",
      params: byRun,
      query: scope,
      waits: true,
      success: reply.json(runDetail),
      errors: { ...scoped, run_not_found },
    },
    file: {
      method: "GET",
      path: "/api/workflow/:id/runs/:runId/files/:file",
      summary: "Read a file of a run, or a range of it",
      params: v.strictObject({ id: text, runId: text, file: text }),
      query: readParameters(scope.entries),
      success: reply.exchange(["application/octet-stream"]),
      errors: {
        ...scoped,
        run_not_found,
        file_not_found: workflowErrors.file_not_found,
        range_not_satisfiable: workflowErrors.range_not_satisfiable,
      },
    },
    start: {
      method: "POST",
      path: "/api/workflow/run",
      summary: "Start a workflow with an execution grant, once",
      body: v.pipe(
        v.strictObject({
          executionGrantId: v.pipe(text, v.nonEmpty()),
          idempotencyKey: v.pipe(text, v.nonEmpty(), maxCharacters(IDEMPOTENCY_KEY_LENGTH)),
          workflowId: v.optional(text),
          definitionPath: v.optional(text),
          parameters: v.optional(jsonObject, {}),
        }),
        v.check(
          ({ workflowId, definitionPath }) => (workflowId === undefined) !== (definitionPath === undefined),
          "one of workflowId and definitionPath",
        ),
      ),
      bodyLimit: CALL_BYTES,
      waits: true,
      takesKey: true,
      success: startedOrEnded({ duplicate: v.optional(v.literal(true)) }),
      errors: {
        ...starting,
        ...keyed,
        execution_grant_invalid,
        definition_path_forbidden: workflowErrors.definition_path_forbidden,
      },
    },
    decide: {
      method: "POST",
      path: "/api/workflow/:id/runs/:runId/gate",
      summary: "Approve or reject at a gate that waits, with an execution grant of the workflow",
      params: byRun,
      body: v.strictObject({
        decision: v.picklist(["approve", "reject"]),
        nodeId: v.optional(text),
        comment: v.optional(v.pipe(text, maxCharacters(COMMENT_LENGTH))),
        values: v.optional(jsonObject),
      }),
      bodyLimit: CALL_BYTES,
      success: reply.json(v.object({ ...accepted.entries, nodeId: text, decision: v.picklist(["approve", "reject"]) })),
      errors: {
        ...granted,
        gate_not_open: workflowErrors.gate_not_open,
        gate_decided: workflowErrors.gate_decided,
        invalid_values: workflowErrors.invalid_values,
      },
    },
    cancel: {
      method: "POST",
      path: "/api/workflow/:id/runs/:runId/cancel",
      summary: "Cancel a run, with an execution grant of the workflow",
      params: byRun,
      success: reply.json(accepted),
      errors: { ...granted, run_ended: workflowErrors.run_ended },
    },
    resume: {
      method: "POST",
      path: "/api/workflow/:id/runs/:runId/resume",
      summary: "Resume a failed or interrupted run as a new run, with an execution grant of the workflow",
      params: byRun,
      body: v.pipe(
        v.strictObject({
          idempotencyKey: v.pipe(text, v.nonEmpty(), maxCharacters(IDEMPOTENCY_KEY_LENGTH)),
          from: v.optional(text),
          as: v.optional(v.picklist(["again", "done"]), "again"),
          output: v.optional(json),
          /** That with which the run started, or the deployed one (an extension). */
          definition: v.optional(v.picklist(["own", "current"]), "own"),
          /** The `version` of the plan that the caller has seen: with another definition, the run is not resumed. */
          version: v.optional(text),
        }),
        v.check(({ as, output }) => output === undefined || as === "done", "output needs as: done"),
      ),
      bodyLimit: CALL_BYTES,
      waits: true,
      success: startedOrEnded({ resumes: text, duplicate: v.optional(v.literal(true)) }),
      errors: {
        ...granted,
        ...beyond,
        run_not_reserved,
        workflow_not_found,
        invalid_parameters,
        run_not_resumable: workflowErrors.run_not_resumable,
        resume_plan_outdated: workflowErrors.resume_plan_outdated,
        run_resumed: workflowErrors.run_resumed,
      },
    },
    resumePlan: {
      method: "GET",
      path: "/api/workflow/:id/runs/:runId/resume-plan",
      summary: "Show which nodes a resume of a run keeps and repeats, and what has changed; starts nothing",
      params: byRun,
      query: readParameters({
        definition: v.optional(v.picklist(["own", "current"])),
        from: v.optional(text),
        as: v.optional(v.picklist(["again", "done"])),
      }),
      success: reply.json(resumePlan),
      errors: {
        ...{ ...reading, invalid_request, workflow_not_found, run_not_found, invalid_parameters },
        run_not_resumable: workflowErrors.run_not_resumable,
      },
    },
    rerun: {
      method: "POST",
      path: "/api/workflow/:id/runs/:runId/rerun",
      summary: "Start the workflow again with the parameters of a run, with an execution grant, once",
      params: byRun,
      body: v.strictObject({
        idempotencyKey: v.pipe(text, v.nonEmpty(), maxCharacters(IDEMPOTENCY_KEY_LENGTH)),
        /** Each member replaces the run's parameter of that name. */
        parameters: v.optional(jsonObject, {}),
        /** Names of the run's parameters that the new run does not get. */
        without: v.optional(v.array(text), []),
      }),
      bodyLimit: CALL_BYTES,
      waits: true,
      success: startedOrEnded({ duplicate: v.optional(v.literal(true)) }),
      errors: { ...starting, ...granted, run_not_resumable: workflowErrors.run_not_resumable },
    },
    schedules: {
      method: "GET",
      path: "/api/workflow/schedules",
      summary: "List the schedules of the deployed workflows, with their next times and last ends",
      query: readParameters({}),
      success: reply.json(v.object({ schedules: v.array(schedule) })),
      errors: reading,
    },
    triggerSchedule: {
      method: "POST",
      path: "/api/workflow/:id/schedules/:name/trigger",
      summary: "Start a run as the schedule does, now",
      params: bySchedule,
      success: reply.json(v.object({ runId: text, workflowId: text, status: v.literal("started") }), 202),
      errors: { ...starting, unknown_schedule },
    },
    pauseSchedule: {
      method: "POST",
      path: "/api/workflow/:id/schedules/:name/pause",
      summary: "Start no more runs at planned times",
      params: bySchedule,
      success: reply.json(v.object({ ok: v.literal(true) })),
      errors: ofSchedule,
    },
    resumeSchedule: {
      method: "POST",
      path: "/api/workflow/:id/schedules/:name/resume",
      summary: "Start runs at planned times again",
      params: bySchedule,
      success: reply.json(v.object({ ok: v.literal(true) })),
      errors: ofSchedule,
    },
    createDefinition: {
      method: "POST",
      path: "/api/workflows",
      summary: "Retired: administrators deploy definitions as files",
      success: reply.empty(),
      errors: retired,
    },
    replaceDefinition: {
      method: "PUT",
      path: "/api/workflow/:id",
      summary: "Retired: administrators deploy definitions as files",
      params: v.strictObject({ id: text }),
      success: reply.empty(),
      errors: retired,
    },
  },
);
