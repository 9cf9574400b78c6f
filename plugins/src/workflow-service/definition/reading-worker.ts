import { listenForJobs } from "@portico/core/kit";
import { readSource, type Source } from "./read-source.ts";
import type { ReadingAnswer, ReadingJob } from "./read-definitions.ts";

// Runs in a worker thread, because parsing a megabyte of YAML can take seconds.

// The parser can create an error at every character. Without stack traces it takes a quarter of the time.
Error.stackTraceLimit = 0;

/** Problems are located in the document that was read last. */
let last: { readonly text: string; readonly isStored: boolean; readonly source: Source } | undefined;

listenForJobs(answer);

function answer({ text, isStored = false, locations }: ReadingJob): ReadingAnswer {
  const read = last?.text === text && last.isStored === isStored ? last : readSource(text, { isStored });
  if ("problems" in read) return { problems: read.problems };
  const { source } = read;
  last = { text, isStored, source };
  if (!locations) return { json: JSON.stringify(source.value) };
  last = undefined;
  return {
    locations: locations.map(({ of, path, offset }) => {
      const { line, column } =
        of === "text"
          ? source.textProblem(path, offset, "")
          : of === "key"
            ? source.keyProblem(path, "")
            : source.problem(path, "");
      return { line, column };
    }),
  };
}
