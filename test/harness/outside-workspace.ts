import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { WORKSPACES } from "../../release/workspaces.ts";
import { root } from "../rooms/repository.ts";
import { compileCache } from "./compile-cache.ts";
import { temporaryFolder } from "./portico-process.ts";

/** A folder outside the repository with installed packages, as a third party has it. */
export interface OutsideWorkspace {
  readonly path: string;
  /** Run a file of an installed package with Node.js, in a folder of this one. Never throws. */
  run(file: string, args: readonly string[], at?: string): Promise<Outcome>;
  remove(): void;
}

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The result of one file in vitest's JSON report. */
export interface ReportedFile {
  readonly name: string;
  readonly assertionResults: readonly {
    readonly title: string;
    readonly status: string;
    readonly failureMessages: readonly string[];
  }[];
}

/**
 * Only the named packages are installed, so that no other package is found by accident. Each is a link, because Node.js strips no types of
 * files in `node_modules`, and these packages are not built.
 */
export function outsideWorkspace(packages: Iterable<string>): OutsideWorkspace {
  const { path, remove } = temporaryFolder();
  for (const name of packages) {
    const link = join(path, "node_modules", name);
    const room = WORKSPACES.find((workspace) => workspace.name === name)?.folder;
    const installed = join(root, room ?? join("node_modules", name));
    if (!existsSync(installed)) throw new Error(`${name} is not installed in this repository`);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(installed, link, "dir");
  }
  return {
    path,
    remove,
    run: (file, args, at = ".") =>
      new Promise((ended) => {
        const options = {
          cwd: resolve(path, at),
          env: { PATH: process.env["PATH"], NO_COLOR: "1", ...compileCache },
          maxBuffer: 64 * 1024 * 1024,
        };
        execFile(process.execPath, [join(path, "node_modules", file), ...args], options, (error, stdout, stderr) =>
          ended({ code: typeof error?.code === "number" ? error.code : error ? 1 : 0, stdout, stderr }),
        );
      }),
  };
}

/** Runs every test below a folder. Throws vitest's output if it cannot run them. */
export async function runTests(outside: OutsideWorkspace, at = "."): Promise<readonly ReportedFile[]> {
  const report = join(outside.path, "report.json");
  const args = ["run", "--root", ".", "--no-isolate", "--reporter", "json", "--outputFile", report, "--testTimeout", "60000"];
  const { stdout, stderr } = await outside.run("vitest/vitest.mjs", args, at);
  if (!existsSync(report)) throw new Error(`vitest ended without a report:\n${stdout}${stderr}`);
  return (JSON.parse(readFileSync(report, "utf8")) as { testResults: ReportedFile[] }).testResults;
}

/** The failed tests, with their messages. */
export function failures(files: readonly ReportedFile[]): readonly string[] {
  return files.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => status === "failed")
      .map(({ title, failureMessages }) => `${name}: ${title}\n${failureMessages.join("\n")}`),
  );
}
