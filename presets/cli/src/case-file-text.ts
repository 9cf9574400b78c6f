import { writeFile } from "node:fs/promises";
import { CommandFailed, EXIT } from "./exit-codes.ts";

const MASK = "***";
const MASKED_NOTE = `# Secrets are masked as ${MASK}: replace them.\n`;

/** A recorded file of cases as YAML, with a note if it contains masked secrets. */
export async function caseFileText(file: Readonly<Record<string, unknown>>): Promise<string> {
  const { stringify } = await import("yaml");
  const text = stringify(file, { lineWidth: 100 });
  return text.includes(MASK) ? `${MASKED_NOTE}${text}` : text;
}

/** Prints a recorded file of cases, or writes it to a new file. Throws CommandFailed (73) if the file exists or cannot be written. */
export async function giveCaseFile(text: string, out: string | undefined): Promise<void> {
  if (out === undefined) return void process.stdout.write(text);
  try {
    await writeFile(out, text, { flag: "wx" });
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new CommandFailed(
      code === "EEXIST" ? `${out} exists already` : `${out} cannot be written (${code})`,
      EXIT.cannotCreate,
      cause,
    );
  }
}
