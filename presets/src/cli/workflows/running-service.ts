import { CallFailed, type Client, createClient } from "@portico/core/client";
import { workflowServiceContract } from "@portico/plugins/workflow-service/contract";
import { dataDirectory } from "../../platform/data-directory.ts";
import type { PlatformSettings } from "../../settings/platform.ts";
import { isDataDirectoryLocked } from "../data-lock.ts";
import { readEndpoints } from "../endpoints-file.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { issueGrant, workflowToken } from "./issue-grant.ts";

/** Grants of the command line are used at once. */
const GRANT_MS = 60_000;
/** A service that says nothing for so long is not there. */
const ANSWER_MS = 30_000;
const ASKED_AT_ONCE = 8;

export interface RunName {
  readonly runId: string;
  /** Default: the service is asked which of its workflows has the run. */
  readonly workflowId?: string | undefined;
}

export interface Decision {
  readonly decision: "approve" | "reject";
  readonly nodeId?: string | undefined;
  readonly comment?: string | undefined;
  readonly values?: Readonly<Record<string, unknown>> | undefined;
}

export type RunningService = Awaited<ReturnType<typeof findService>>;

/**
 * The workflow service that runs on the data directory, or at another address, with the instance's token and grants. Its functions throw
 * CommandFailed: 1 with the service's own words where it refuses, 69 where it is not to be reached.
 */
export async function findService(settings: PlatformSettings, given: string | undefined) {
  const baseURL = given === undefined ? runningAt(settings) : checkedUrl(given);
  const token = await workflowToken(settings);
  const client = createClient(workflowServiceContract, {
    baseURL,
    headers: { "x-workflow-service-token": token.reveal() },
  });
  const signal = AbortSignal.timeout(ANSWER_MS);

  const granted = async ({ runId, workflowId }: RunName) => {
    const id = workflowId ?? (await workflowOf(client, runId, signal));
    const { executionGrantId } = await issueGrant(settings, { workflowId: id, ttlMs: GRANT_MS });
    return { params: { id, runId }, headers: { "x-execution-grant": executionGrantId }, signal };
  };
  return {
    decide: (run: RunName, body: Decision) =>
      answered(baseURL, async () => client.decide({ ...(await granted(run)), body: withoutAbsent(body) })),
    cancel: (run: RunName) => answered(baseURL, async () => client.cancel(await granted(run))),
  };
}

async function workflowOf(client: Client<typeof workflowServiceContract>, runId: string, signal: AbortSignal): Promise<string> {
  const { workflows } = await client.workflows({ signal });
  for (let first = 0; first < workflows.length; first += ASKED_AT_ONCE) {
    const asked = workflows.slice(first, first + ASKED_AT_ONCE).map(async ({ id }) => {
      const has = await client.run({ params: { id, runId }, signal }).then(() => true, isNotFound);
      return has ? id : undefined;
    });
    const found = (await Promise.all(asked)).find((id) => id !== undefined);
    if (found !== undefined) return found;
  }
  throw new CommandFailed(
    `No deployed workflow has the run ${runId}; --workflow names one that is not deployed any more`,
    EXIT.failed,
  );
}

function isNotFound(error: unknown): false {
  if (CallFailed.is(error) && error.status === 404) return false;
  throw error;
}

async function answered<T>(baseURL: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof CommandFailed) throw error;
    if (CallFailed.is(error)) throw new CommandFailed(wordsOf(error), EXIT.failed, error);
    throw new CommandFailed(`The workflow service at ${baseURL} cannot be reached`, EXIT.unavailable, error);
  }
}

function wordsOf({ status, body }: CallFailed): string {
  const { error, details } = (typeof body === "object" && body !== null ? body : {}) as { error?: unknown; details?: unknown };
  const words = typeof error === "string" ? error : `It answered with status ${status}`;
  return `The workflow service refused: ${words}${details === undefined ? "" : ` ${JSON.stringify(details)}`}`;
}

function runningAt({ dataDir }: PlatformSettings): string {
  const directory = dataDirectory(dataDir);
  const url = isDataDirectoryLocked(directory) ? readEndpoints(directory)?.listeners["workflow"]?.url : undefined;
  if (url !== undefined) return url;
  throw new CommandFailed(
    `No workflow service runs on the data directory ${directory.path}: start it, or name one with --url`,
    EXIT.unavailable,
  );
}

function checkedUrl(text: string): string {
  const url = URL.parse(text);
  if (url && /^https?:$/.test(url.protocol) && !url.username && !url.password) return text.replace(/\/+$/, "");
  throw new CommandFailed("--url is no http or https address", EXIT.usage);
}

function withoutAbsent<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as T;
}
