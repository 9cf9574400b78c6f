import { RUN_STATUSES, type RunStatus } from "@portico/plugins/workflow-service/contract";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { readSince } from "../read-options.ts";

const LIMIT = "20";

/** The flags of a search for runs, as they are written. */
export interface WrittenSearch {
  readonly workflow?: string | undefined;
  readonly status?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly text?: string | undefined;
  readonly definition?: string | undefined;
  readonly limit?: string | undefined;
  /** Each is `name=value`. */
  readonly param: readonly string[];
  readonly output: readonly string[];
}

/** A search for runs, without its pages. */
export interface RunSearch {
  readonly workflowId?: string;
  readonly status?: RunStatus;
  readonly startedFrom?: string;
  readonly startedBefore?: string;
  readonly q?: string;
  readonly version?: string;
  readonly parameter?: string[];
  readonly output?: string[];
}

/** Reads a search, and the maximum number of runs. Throws CommandFailed (64). */
export function readRunSearch(written: WrittenSearch): { readonly search: RunSearch; readonly limit: number } {
  const { workflow, status, since, until, text, definition, limit = LIMIT, param, output } = written;
  if (!/^[1-9]\d{0,8}$/.test(limit)) throw new CommandFailed("Option --limit must be a number, at least 1", EXIT.usage);
  const known = RUN_STATUSES.find((each) => each === status);
  if (status !== undefined && known === undefined)
    throw new CommandFailed(`Option --status must be one of ${RUN_STATUSES.join(", ")}`, EXIT.usage);
  for (const [option, values] of Object.entries({ param, output })) {
    if (values.some((value) => value.indexOf("=") < 1))
      throw new CommandFailed(`Option --${option} must have the form name=value`, EXIT.usage);
  }
  return {
    limit: Number(limit),
    search: {
      ...(workflow !== undefined && { workflowId: workflow }),
      ...(known !== undefined && { status: known }),
      ...(since !== undefined && { startedFrom: new Date(readSince(since)).toISOString() }),
      ...(until !== undefined && { startedBefore: new Date(readSince(until, "until")).toISOString() }),
      ...(text !== undefined && { q: text }),
      ...(definition !== undefined && { version: definition }),
      ...(param.length > 0 && { parameter: [...param] }),
      ...(output.length > 0 && { output: [...output] }),
    },
  };
}
