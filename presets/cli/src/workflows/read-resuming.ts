import { parseJson } from "@portico/core";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import type { Resuming } from "./running-service.ts";

/** The flags of `portico workflow resume`. Throws CommandFailed (64). */
export function readResuming({
  from,
  as = "again",
  output,
}: {
  readonly from?: string | undefined;
  readonly as?: string | undefined;
  readonly output?: string | undefined;
}): Resuming {
  if (as !== "again" && as !== "done") throw new CommandFailed("Option --as must be again or done", EXIT.usage);
  if (output === undefined) return { from, as };
  if (as !== "done") throw new CommandFailed("Option --output needs --as done", EXIT.usage);
  try {
    return { from, as, output: parseJson(output) };
  } catch {
    // The parser's error quotes the text, which may be confidential.
    throw new CommandFailed("Option --output must be JSON", EXIT.usage);
  }
}
