import { writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import { caseFileOfRun } from "@portico/plugins/workflow-service/client";
import { CommandFailed, EXIT } from "../../exit-codes.ts";
import type { RunDetail, RunningService, RunName } from "../running-service.ts";

const MASK = "***";
const MASKED_NOTE = `# Secrets are masked as ${MASK}: replace them.\n`;

/** The text of a file of cases with one case, which repeats a run. Throws CommandFailed (1) if the run has not ended. */
export async function recordCase(
  service: RunningService,
  run: RunName,
  { definitionsDir, out }: { readonly definitionsDir: string; readonly out: string | undefined },
): Promise<string> {
  const detail = await service.run(run);
  if (!hasEnded(detail)) throw new CommandFailed(`The run ${run.runId} has not ended`, EXIT.failed);
  const { dslPath } = await service.definition(detail.workflowId);
  const folder = out === undefined ? process.cwd() : dirname(resolve(out));
  const definition = relative(folder, join(resolve(definitionsDir), dslPath)).replaceAll(sep, "/");
  const { stringify } = await import("yaml");
  const text = stringify(caseFileOfRun(detail, definition), { lineWidth: 100 });
  return text.includes(MASK) ? `${MASKED_NOTE}${text}` : text;
}

/** Writes a new file of cases. Throws CommandFailed (73) if the file exists or cannot be written. */
export async function writeCaseFile(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text, { flag: "wx" });
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new CommandFailed(
      code === "EEXIST" ? `${file} exists already` : `${file} cannot be written (${code})`,
      EXIT.cannotCreate,
      cause,
    );
  }
}

function hasEnded({ status }: RunDetail): boolean {
  return status !== "running" && status !== "waiting_human";
}
