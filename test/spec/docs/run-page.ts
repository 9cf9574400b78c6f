import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type WorkflowProcess, workflowFolder } from "../../harness/workflow-process.ts";
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
}

/** The ports that pages write down for the listeners of a start. */
const WRITTEN_PORTS: Readonly<Record<string, string>> = { 49152: "proxy", 49153: "workflow", 49154: "agent" };

/**
 * Be the reader of a page: beside a preset `local` in a folder of its own, run its shell blocks in their order and in one shell, and write
 * the files that its blocks go into. Ends when a command fails, or a call is answered with an error. Differences to a person's shell:
 * - `npx` runs this checkout, and `curl -N`, which goes on until somebody ends it, runs beside the rest;
 * - addresses that the page writes down are those of this start;
 * - `NAME=wrun_…` takes what was printed last and begins like that.
 *
 * @throws Error with what was run and printed until then.
 */
export async function runPage(
  page: Page,
  { files = {}, again = {}, prints, afterwards }: Reader,
  signal: AbortSignal,
): Promise<void> {
  using folder = workflowFolder();
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder.path, path)), { recursive: true });
    writeFileSync(join(folder.path, path), content);
  }
  symlinkSync(join(root, "playground"), join(folder.path, "playground"));
  await using service = await folder.start("local");
  for (const block of page.blocks) comparePrinted(block, service);

  const commands = page.blocks.map((block) => {
    if (block.mark?.kind === "into") return writing(block, service);
    if (!isRun(block)) return "";
    const code = placed(block, service);
    const [, wanted] = Object.entries(again).find(([words]) => code.includes(words)) ?? [];
    return wanted ? `block() {\n${code}}\nagain ${quoted(wanted.source)} block` : code;
  });
  const printed = await bash([PREAMBLE, ...commands, END].join("\n"), folder.path, signal);
  let from = 0;
  for (const wanted of prints) {
    const found = printed.slice(from).match(wanted);
    if (!found) throw new Error(`${page.file}: ${wanted} is not printed, or not in its place\n${printed}`);
    from += found.index! + found[0].length;
  }
  await afterwards?.(service, printed);
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
    portico) "$NODE" "$ROOT/presets/portico.mjs" "$@" ;;
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
  return addressed.replaceAll(/^(\w+)=([a-z]+_)…/gm, `$1=$(grep -oE '$2[A-Za-z0-9_-]+' "$PRINTED" | tail -1)`);
}

/** Pages show the line of a start with ports and a process id of their own. */
function comparePrinted({ file, line, text: shown, mark }: Block, service: WorkflowProcess): void {
  if (mark?.kind !== "printed by") return;
  if (mark.of !== "portico start --json") throw new Error(`${file}:${line}: what ${mark.of} prints is not known here`);
  const [said, is] = [shown, service.stdout()].map((each) => each.trim().replaceAll(/(?<=:)\d+/g, "0"));
  if (said !== is) throw new Error(`${file}:${line}: the start prints ${is}`);
}

function writing({ text: content, mark }: Block, service: WorkflowProcess): string {
  const path = mark!.of;
  const write = `mkdir -p ${quoted(dirname(path))}\ncat > ${quoted(path)} <<'END OF FILE'\n${content}END OF FILE\n`;
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
