import { randomUUID } from "node:crypto";
import type { EventOf } from "@portico/core";
import { CallFailed, type CallResult, createClient } from "@portico/core/client";
import { workflowServiceContract } from "@portico/plugins/workflow-service/contract";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { trustOwnCertificate } from "../certificate.ts";
import { checkedUrl, runningAt } from "../running-at.ts";
import { issueGrant, workflowToken } from "./issue-grant.ts";
import type { RunSearch } from "./read-run-search.ts";

/** Lifetime of the command line's own grants, which are used immediately. */
const GRANT_MS = 60_000;
/** A service that is silent for this long counts as not reachable. */
const ANSWER_MS = 30_000;
const ASKED_AT_ONCE = 8;
/** Maximum runs of one page. */
const SEARCHED_AT_ONCE = 200;

type Routes = typeof workflowServiceContract;
export type Deployed = CallResult<Routes["workflows"]>;
export type WorkflowSummary = Deployed["workflows"][number];
export type DefinitionVersions = CallResult<Routes["versions"]>;
export type DefinitionVersion = DefinitionVersions["versions"][number];
export type FoundRuns = CallResult<Routes["searchRuns"]>;
export type FoundRun = FoundRuns["runs"][number];
export type WaitingGate = CallResult<Routes["gates"]>["gates"][number];
export type RunDetail = CallResult<Routes["run"]>;
/** One event of a run (specification 6.1). */
export type RunEvent = EventOf<Routes["events"]["success"]["events"]>;

export type ResumePlan = CallResult<Routes["resumePlan"]>;
export type WorkflowSchedule = CallResult<Routes["schedules"]>["schedules"][number];

export interface ScheduleName {
  /** Of the workflow. */
  readonly id: string;
  readonly name: string;
}

export interface RunName {
  readonly runId: string;
  /** Default: the service is asked which workflow has the run. */
  readonly workflowId?: string | undefined;
}

export interface Decision {
  readonly decision: "approve" | "reject";
  readonly nodeId?: string | undefined;
  readonly comment?: string | undefined;
  readonly values?: Readonly<Record<string, unknown>> | undefined;
}

export interface Resuming {
  /** The node where it goes on. */
  readonly from?: string | undefined;
  readonly as: "again" | "done";
  readonly definition: "own" | "current";
  /** Of the plan. Another definition is refused. */
  readonly version?: string | undefined;
  /** With `done`. */
  readonly output?: unknown;
}

/** How the parameters of a new run differ from those of the run that it repeats. */
export interface Changes {
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Names of parameters that it does not get. */
  readonly without: readonly string[];
}

export type RunningService = Awaited<ReturnType<typeof findService>>;

/**
 * The workflow service that uses the data directory, or the service at another address, called with the instance's token and grants. The functions throw
 * CommandFailed: 1 with the service's own message if it refuses, 69 if it cannot be reached.
 */
export async function findService(settings: PlatformSettings, given: string | undefined) {
  const baseURL = given === undefined ? runningAt(settings, "workflow") : checkedUrl(given);
  if (baseURL.startsWith("https:")) trustOwnCertificate(settings);
  const token = await workflowToken(settings);
  const client = createClient(workflowServiceContract, {
    baseURL,
    headers: { "x-workflow-service-token": token.reveal() },
  });

  const detailOf = async ({ runId, workflowId }: RunName, leaving?: AbortSignal): Promise<RunDetail> => {
    const signal = AbortSignal.any([AbortSignal.timeout(ANSWER_MS), ...(leaving ? [leaving] : [])]);
    if (workflowId !== undefined) return client.run({ params: { id: workflowId, runId }, signal });
    const { workflows } = await client.workflows({ signal });
    for (let first = 0; first < workflows.length; first += ASKED_AT_ONCE) {
      const asked = workflows
        .slice(first, first + ASKED_AT_ONCE)
        .map(({ id }) => client.run({ params: { id, runId }, signal }).catch(orNotFound));
      const found = (await Promise.all(asked)).find((detail) => detail !== undefined);
      if (found) return found;
    }
    throw new CommandFailed(
      `No deployed workflow has the run ${runId}. If its workflow is no longer deployed, name it with --workflow`,
      EXIT.failed,
    );
  };
  const granted = async (run: RunName) => {
    const { runId } = run;
    const id = run.workflowId ?? (await detailOf(run)).workflowId;
    const { executionGrantId } = await issueGrant(settings, { workflowId: id, ttlMs: GRANT_MS });
    const headers = { "x-execution-grant": executionGrantId };
    return { params: { id, runId }, headers, signal: AbortSignal.timeout(ANSWER_MS) };
  };
  /** Times out if the head of a response does not arrive. The body has no timeout. */
  const subscribed = async (runId: string, signal: AbortSignal): Promise<AsyncIterable<RunEvent> | undefined> => {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), ANSWER_MS);
    try {
      return await client.events({ query: { runId }, signal: AbortSignal.any([signal, late.signal]) }).catch(orNotFound);
    } finally {
      clearTimeout(timer);
    }
  };

  const answered = <T>(call: () => Promise<T>): Promise<T> =>
    call().catch((error: unknown) => {
      if (error instanceof CommandFailed) throw error;
      if (CallFailed.is(error)) throw new CommandFailed(wordsOf(error), EXIT.failed, error);
      throw new CommandFailed(`The workflow service at ${baseURL} cannot be reached`, EXIT.unavailable, error);
    });
  const soon = () => ({ signal: AbortSignal.timeout(ANSWER_MS) });
  return {
    /** Includes the unusable files. */
    deployed: (): Promise<Deployed> => answered(() => client.workflows(soon())),
    /** Its parameters, and the graph of its nodes. */
    definition: (workflowId: string) => answered(() => client.definition({ params: { id: workflowId }, ...soon() })),
    /** Newest first. */
    versions: (workflowId: string): Promise<DefinitionVersions> =>
      answered(() => client.versions({ params: { id: workflowId }, ...soon() })),
    trigger: (workflowId: string, parameters: Readonly<Record<string, unknown>>, key?: string) =>
      answered(() =>
        client.trigger({
          ...{ query: { id: workflowId }, body: parameters, ...soon() },
          ...(key !== undefined && { headers: { "idempotency-key": key } }),
        }),
      ),
    /** The newest runs that match a search, at most `limit`, from as many pages as needed. `next` leads to the older ones. */
    findRuns: (search: RunSearch, limit: number): Promise<FoundRuns> =>
      answered(async () => {
        const found: FoundRun[] = [];
        for (let cursor: string | undefined; ;) {
          const size = String(Math.min(limit - found.length, SEARCHED_AT_ONCE));
          const query = { ...search, limit: size, ...(cursor !== undefined && { cursor }) };
          const { runs, next } = await client.searchRuns({ query, ...soon() });
          found.push(...runs);
          if (next === undefined) return { runs: found };
          if (found.length >= limit) return { runs: found, next };
          cursor = next;
        }
      }),
    /** The gates that wait, of all workflows, those of the newest runs first. */
    gates: (): Promise<readonly WaitingGate[]> =>
      answered(async () => {
        const found: WaitingGate[] = [];
        let cursor: string | undefined;
        do {
          const query = { limit: String(SEARCHED_AT_ONCE), ...(cursor !== undefined && { cursor }) };
          const page = await client.gates({ query, ...soon() });
          found.push(...page.gates);
          cursor = page.next;
        } while (cursor !== undefined);
        return found;
      }),
    run: (run: RunName, signal?: AbortSignal): Promise<RunDetail> => answered(() => detailOf(run, signal)),
    /** Takes over the run's live events from another follower. Undefined if the run has no live events. Later errors are thrown unchanged. */
    events: (runId: string, signal: AbortSignal): Promise<AsyncIterable<RunEvent> | undefined> =>
      answered(() => subscribed(runId, signal)),
    decide: (run: RunName, body: Decision) =>
      answered(async () => client.decide({ ...(await granted(run)), body: withoutAbsent(body) })),
    resume: (run: RunName, body: Resuming) =>
      answered(async () =>
        client.resume({
          ...(await granted(run)),
          body: {
            ...{ idempotencyKey: randomUUID(), as: body.as, definition: body.definition },
            ...withoutAbsent({ from: body.from, version: body.version, output: body.output }),
          },
        }),
      ),
    /** What `resume` would do. */
    resumePlan: ({ runId, workflowId }: RunName, { from, as, definition }: Resuming): Promise<ResumePlan> =>
      answered(async () => {
        const id = workflowId ?? (await detailOf({ runId })).workflowId;
        return client.resumePlan({ params: { id, runId }, query: withoutAbsent({ from, as, definition }), ...soon() });
      }),
    rerun: (run: RunName, { parameters, without }: Changes) =>
      answered(async () =>
        client.rerun({ ...(await granted(run)), body: { idempotencyKey: randomUUID(), parameters, without: [...without] } }),
      ),
    schedules: (): Promise<readonly WorkflowSchedule[]> => answered(async () => (await client.schedules(soon())).schedules),
    triggerSchedule: (params: ScheduleName) => answered(() => client.triggerSchedule({ params, ...soon() })),
    pauseSchedule: (params: ScheduleName) => answered(() => client.pauseSchedule({ params, ...soon() })),
    resumeSchedule: (params: ScheduleName) => answered(() => client.resumeSchedule({ params, ...soon() })),
    cancel: (run: RunName) => answered(async () => client.cancel(await granted(run))),
  };
}

function orNotFound(error: unknown): undefined {
  if (CallFailed.is(error) && error.status === 404) return undefined;
  throw error;
}

function wordsOf({ status, body }: CallFailed): string {
  const { error, details } = (typeof body === "object" && body !== null ? body : {}) as { error?: unknown; details?: unknown };
  const words = typeof error === "string" ? error : `It answered with status ${status}`;
  return `The workflow service refused: ${words}${details === undefined ? "" : ` ${JSON.stringify(details)}`}`;
}

function withoutAbsent<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as T;
}
