import type { CallInput } from "@portico/core/client";
import { RUN_STATUSES, type workflowServiceContract } from "@portico/plugins/workflow-service/contract";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { readSince } from "../read-options.ts";

const LIMIT = "20";

/** Parameters of a search by the flags that set them, unchanged. */
const PARAMETERS = { workflow: "workflowId", text: "q", error: "error", definition: "version" } as const;

/** The flags of a search for runs, as they are written. */
export interface WrittenSearch extends Readonly<
  Partial<Record<keyof typeof PARAMETERS | "status" | "since" | "until" | "limit", string>>
> {
  /** Each is `name=value`. */
  readonly param: readonly string[];
  readonly output: readonly string[];
}

type Query = NonNullable<CallInput<typeof workflowServiceContract.searchRuns>["query"]>;
/** A search for runs, without its pages. */
export type RunSearch = Omit<Query, "limit" | "cursor" | "before">;

/** Reads a search, and the maximum number of runs. Throws CommandFailed (64). */
export function readRunSearch(written: WrittenSearch): { readonly search: RunSearch; readonly limit: number } {
  const { status, since, until, limit = LIMIT, param, output } = written;
  if (!/^[1-9]\d{0,8}$/.test(limit)) throw new CommandFailed("Option --limit must be a number, at least 1", EXIT.usage);
  const known = RUN_STATUSES.find((each) => each === status);
  if (status !== undefined && known === undefined)
    throw new CommandFailed(`Option --status must be one of ${RUN_STATUSES.join(", ")}`, EXIT.usage);
  for (const [option, values] of Object.entries({ param, output })) {
    if (values.some((value) => value.indexOf("=") < 1))
      throw new CommandFailed(`Option --${option} must have the form name=value`, EXIT.usage);
  }
  const texts = Object.entries(PARAMETERS).map(([flag, name]) => [name, written[flag as keyof typeof PARAMETERS]] as const);
  return {
    limit: Number(limit),
    search: {
      ...Object.fromEntries(texts.filter(([, value]) => value !== undefined)),
      ...(known !== undefined && { status: known }),
      ...(since !== undefined && { startedFrom: new Date(readSince(since)).toISOString() }),
      ...(until !== undefined && { startedBefore: new Date(readSince(until, "until")).toISOString() }),
      ...(param.length > 0 && { parameter: [...param] }),
      ...(output.length > 0 && { output: [...output] }),
    },
  };
}
