import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { startPortico } from "../../harness/portico-process.ts";
import { type WorkflowFolder, type WorkflowProcess, workflowFolder } from "../../harness/workflow-process.ts";
import { root } from "../../rooms/repository.ts";
import type { Block, Page } from "./pages.ts";

/** What the reader of a page has before its first command, and what its commands come to. */
export interface Reader {
  /** Files that the page takes for granted, by their path in the folder where the service runs. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  /** Blocks with these words are run again until what they print fits: what they ask after takes its time. */
  readonly again?: Readonly<Record<string, RegExp>>;
  /** What is printed, in this order. */
  readonly prints: readonly RegExp[];
  /** A look at the service afterwards. */
  readonly afterwards?: (service: WorkflowProcess, printed: string) => Promise<void>;
  /**
   * The page creates the service in a folder of the clone, and starts it with `npm start`: the folder, and the program of that script. The blocks
   * before that command are run in the clone.
   */
  readonly creates?: { readonly folder: string; readonly program: string };
}

/** The ports that pages write down for the listeners of a start. */
const WRITTEN_PORTS: Readonly<Record<string, string>> = { 49152: "proxy", 49153: "workflow", 49154: "agent" };

/**
 * Be the reader of a page: beside a preset `local` in a folder of its own, run its shell blocks in their order and in one shell, and write
 * the files that its blocks go into. Ends when a command fails, or a call is answered with an error. Differences to a person's shell:
 * - `npx` runs this checkout, and `curl -N`, which runs until it is ended, runs beside the rest;
 * - addresses that the page writes down are those of this start;
 * - `NAME=wrun_…` takes what was printed last and begins like that;
 * - blocks of `diff` are applied.
 *
 * @throws Error with what was run and printed until then.
 */
export async function runPage(
  page: Page,
  { files = {}, again = {}, prints, afterwards, creates }: Reader,
  signal: AbortSignal,
): Promise<void> {
  using folder = workflowFolder();
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder.path, path)), { recursive: true });
    writeFileSync(join(folder.path, path), content);
  }
  symlinkSync(join(root, "playground"), join(folder.path, "playground"));
  const before = creates ? page.blocks.findIndex(({ text }) => text.trim() === "npm start") : 0;
  if (creates) await createService(page.blocks.slice(0, before), folder, creates.folder, signal);
  const cwd = join(folder.path, creates?.folder ?? "");
  await using service = await (creates ? startProgram(cwd, creates.program) : folder.start("local"));
  for (const block of page.blocks) comparePrinted(block, service);

  const commands = page.blocks.slice(before).map((block) => {
    if (block.mark?.kind === "into") return writing(block, service);
    if (!isRun(block)) return "";
    const code = placed(block, service);
    const [, wanted] = Object.entries(again).find(([words]) => code.includes(words)) ?? [];
    return wanted ? `block() {\n${code}}\nagain ${quoted(wanted.source)} block` : code;
  });
  const printed = await bash([PREAMBLE, ...commands, END].join("\n"), cwd, signal);
  let from = 0;
  for (const wanted of prints) {
    const found = printed.slice(from).match(wanted);
    if (!found) throw new Error(`${page.file}: ${wanted} is not printed, or not in its place\n${printed}`);
    from += found.index! + found[0].length;
  }
  await afterwards?.(service, printed);
}

/** The part of a page that comes before its service runs. Its scripts of npm are run, too: they are those of the reader's own package. */
async function createService(
  blocks: readonly Block[],
  { path }: WorkflowFolder,
  made: string,
  signal: AbortSignal,
): Promise<void> {
  symlinkSync(join(root, "node_modules"), join(path, "node_modules"));
  const commands = blocks.map((block) => {
    if (block.mark?.kind === "into") return fileCommand(block, block.mark.of);
    return block.language === "sh" && block.text.trim() !== "npm ci" ? block.text : "";
  });
  await bash([PREAMBLE, ...commands, `[ "$PWD" = ${quoted(join(path, made))} ]`].join("\n"), path, signal);
}

async function startProgram(cwd: string, program: string): Promise<WorkflowProcess> {
  const service = await startPortico({ cwd, program: join(cwd, program) });
  const token = (name: string) => (JSON.parse(service.read("credentials.json")) as Record<string, string>)[name]!;
  return Object.assign(service, { token }) as unknown as WorkflowProcess;
}

/**
 * Commands that set up, start, test or measure a checkout. The checkout of this test is set up, and this test is running in it.
 */
const NPM = /^npm (?:ci|test|start|run [\w:]+)\b/;

/** Whether a block is for the shell of a reader. */
export function isRun({ language, text: code }: Block): boolean {
  if (language !== "sh") return false;
  const commands = code
    .replaceAll(/ +#.*$/gm, "")
    .trim()
    .split(/\n| && /);
  return !commands.every((command) => NPM.test(command));
}

const PREAMBLE = `
set -eo pipefail
shopt -s inherit_errexit
npx() {
  local tool=$1; shift
  case $tool in
    portico) "$NODE" "$ROOT/presets/cli/portico.mjs" "$@" ;;
    node) "$NODE" "$@" ;;
    *) echo "Pages run portico and node with npx, and not $tool" >&2; return 64 ;;
  esac
}
curl() {
  if [ "$1" = -N ]; then command curl --silent --show-error --fail-with-body "$@" >> "$PRINTED.beside" &
  else command curl --silent --show-error --fail-with-body "$@"; echo; fi
}
again() {
  local wanted=$1 printed; shift
  for _ in {1..200}; do
    printed=$("$@")
    if grep -qE -- "$wanted" <<< "$printed"; then echo "$printed"; return; fi
    sleep 0.1
  done
  echo "$printed"
  return 1
}
apply() {
  "$NODE" -e '
    const fs = require("node:fs");
    const [file] = process.argv.slice(1);
    const lines = fs.readFileSync(0, "utf8").trimEnd().split("\\n");
    const side = (sign) => lines.filter((line) => line[0] !== sign).map((line) => line.slice(1)).join("\\n");
    const text = fs.readFileSync(file, "utf8");
    if (text.split(side("+")).length !== 2) throw new Error(file + " does not have once: " + side("+"));
    fs.writeFileSync(file, text.replace(side("+"), () => side("-")));
  ' "$1"
}
trap 'echo "$ $BASH_COMMAND" >&2' DEBUG
`;

/** What runs beside the rest has to end, too, and well. What it printed comes last. */
const END = `
for job in $(jobs -p); do wait "$job"; done
if [ -e "$PRINTED.beside" ]; then cat "$PRINTED.beside"; fi
`;

function placed({ file, line, text: code }: Block, service: WorkflowProcess): string {
  const addressed = code.replaceAll(/http:\/\/127\.0\.0\.1:(\d+)/g, (_, port: string) => {
    const listener = WRITTEN_PORTS[port];
    if (!listener) throw new Error(`${file}:${line}: pages write the ports ${JSON.stringify(WRITTEN_PORTS)}, and not ${port}`);
    return new URL(service.url(listener)).origin;
  });
  return addressed.replaceAll(/^(\w+)=([a-z]+_)…/gm, `$1=$(grep -oE '$2[A-Za-z0-9_-]{12,}' "$PRINTED" | tail -1)`);
}

/** Pages show the line of a start with ports and a process id of their own. */
function comparePrinted({ file, line, text: shown, mark }: Block, service: WorkflowProcess): void {
  if (mark?.kind !== "printed by") return;
  if (mark.of !== "portico start --json") throw new Error(`${file}:${line}: what ${mark.of} prints is not known here`);
  const [said, is] = [shown, service.stdout()].map((each) => each.trim().replaceAll(/(?<=:)\d+/g, "0"));
  if (said !== is) throw new Error(`${file}:${line}: the start prints ${is}`);
}

/** A part is applied to the file, and settings are added to those that it has. */
function fileCommand({ text: content, language }: Block, path: string): string {
  const end = `<<'END OF FILE'\n${content}END OF FILE\n`;
  if (language === "diff") return `apply ${quoted(path)} ${end}`;
  return `mkdir -p ${quoted(dirname(path))}\ncat ${language === "yaml" ? ">>" : ">"} ${quoted(path)} ${end}`;
}

function writing(block: Block, service: WorkflowProcess): string {
  const path = block.mark!.of;
  const write = fileCommand(block, path);
  const [, id] = /^workflows\/(.+)\.\w+$/.exec(path) ?? [];
  if (id === undefined) return write;
  // A service sees it soon; the reader of a page is slower than that.
  const header = `X-Workflow-Service-Token: ${service.token("workflowServiceToken")}`;
  return `${write}again '"id":"${id}"' curl ${service.url("workflow")}/api/workflows -H '${header}' > /dev/null`;
}

async function bash(script: string, cwd: string, signal: AbortSignal): Promise<string> {
  const output = join(cwd, ".printed");
  const descriptor = openSync(output, "a");
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, NO_COLOR: "1", PORTICO_AUTO_PROVIDERS: "false", NODE: process.execPath, ROOT: root, PRINTED: output };
  const shell = spawn("bash", ["-c", script], { cwd, env, stdio: ["ignore", descriptor, "pipe"], signal });
  closeSync(descriptor);
  const traced: string[] = [];
  shell.stderr!.setEncoding("utf8").on("data", (piece: string) => traced.push(piece));
  // Not `close`: what a cut page leaves behind holds the output open.
  const code = await new Promise((resolve) => shell.once("error", resolve).once("exit", resolve));
  const printed = readFileSync(output, "utf8");
  if (code !== 0) throw new Error(`The shell ended with ${code}\n${traced.join("")}\n${printed}`);
  return printed;
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
