import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { WORKSPACES } from "../../release/workspaces.ts";
import { type RuleGroup, RULES } from "./rules.ts";

/**
 * Mutation testing of the rules that guard access and durability: `npm run mutate`, or of the groups and files that the arguments name:
 * `npm run mutate -- "model proxy" core/src/http/origin-rule.ts`. It works on a copy of the checkout in `.mutation`, and leaves a report per group in
 * `.mutation/reports`. It exits with 1 when fewer mutants are noticed than `LEAST_SCORE` says.
 */
const root = resolve(import.meta.dirname, "../..");
const copy = join(root, ".mutation");
const tool = join(import.meta.dirname, "node_modules");

/** Percent of the mutants that the tests have to notice, over all groups. */
const LEAST_SCORE = 70;

const named = process.argv.slice(2);
const groups = chosenGroups();
copyCheckout();
const results = groups.map((group) => ({ group, ...mutate(group) }));
for (const { group, noticed, missed } of results) tell(group.name, noticed, missed);
const noticed = results.reduce((sum, result) => sum + result.noticed, 0);
const missed = results.reduce((sum, result) => sum + result.missed, 0);
tell("all", noticed, missed);
process.exitCode = noticed >= ((noticed + missed) * LEAST_SCORE) / 100 ? 0 : 1;

/** All groups, or those whose name or one of whose files is named, then with these files alone. */
function chosenGroups(): readonly RuleGroup[] {
  if (named.length === 0) return RULES;
  const wanted = new Set(named);
  const chosen = RULES.flatMap((group) => {
    if (wanted.delete(group.name)) return [group];
    const files = group.files.filter((file) => wanted.delete(file));
    return files.length > 0 ? [{ ...group, files }] : [];
  });
  if (wanted.size === 0) return chosen;
  console.error(`No group or file of test/mutation/rules.ts is called ${[...wanted].join(", ")}.`);
  process.exit(64);
}

function mutate(group: RuleGroup): { readonly noticed: number; readonly missed: number } {
  const report = join("reports", `${group.name.replaceAll(" ", "-")}.json`);
  const settings = {
    mutate: group.files,
    testRunner: "vitest",
    plugins: [join(tool, "@stryker-mutator/vitest-runner/dist/src/index.js"), join(import.meta.dirname, "error-words.ts")],
    ignorers: ["error-words"],
    vitest: { configFile: "test/mutation/vitest.config.ts" },
    // The copy is there for that.
    inPlace: true,
    coverageAnalysis: "perTest",
    // A mutant in code that runs once when its file is loaded would need all tests each time.
    ignoreStatic: true,
    concurrency: 2,
    dryRunTimeoutMinutes: 20,
    timeoutMS: 30_000,
    reporters: ["clear-text", "progress-append-only", "json"],
    jsonReporter: { fileName: report },
    clearTextReporter: { allowColor: false, logTests: false, reportTests: false, reportScoreTable: false },
  };
  writeFileSync(join(copy, "stryker.config.json"), JSON.stringify(settings));
  const { status } = spawnSync(process.execPath, [join(tool, "@stryker-mutator/core/bin/stryker.js"), "run"], {
    cwd: copy,
    stdio: "inherit",
    env: { ...process.env, PORTICO_MUTATION_TESTS: JSON.stringify(group.tests) },
  });
  if (status !== 0) throw new Error(`Mutation testing of ${group.name} ended with ${status}`);
  const { files } = JSON.parse(readFileSync(join(copy, report), "utf8")) as {
    files: Record<string, { mutants: { status: string }[] }>;
  };
  const states = Object.values(files).flatMap(({ mutants }) => mutants.map((mutant) => mutant.status));
  return {
    noticed: states.filter((state) => state === "Killed" || state === "Timeout").length,
    missed: states.filter((state) => state === "Survived" || state === "NoCoverage").length,
  };
}

function tell(name: string, noticed: number, missed: number): void {
  const percent = (100 * noticed) / Math.max(1, noticed + missed);
  process.stdout.write(`${percent.toFixed(1).padStart(5)} %  ${noticed}/${noticed + missed}  ${name}\n`);
}

/** Its packages are the checkout's, and its rooms its own: Node strips no types of what lies in `node_modules`. */
function copyCheckout(): void {
  rmSync(copy, { recursive: true, force: true });
  const listed = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "-z"], { cwd: root });
  for (const file of new Set(listed.toString().split("\0"))) {
    if (file === "" || !existsSync(join(root, file))) continue;
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    cpSync(join(root, file), join(copy, file), { verbatimSymlinks: true });
  }
  for (const { folder } of WORKSPACES) {
    const modules = join(folder, "node_modules");
    if (existsSync(join(root, modules))) symlinkSync(join(root, modules), join(copy, modules), "dir");
  }
  for (const entry of readdirSync(join(root, "node_modules"))) {
    if (entry === "@portico" || entry === "portico" || entry.startsWith(".")) continue;
    link(join(root, "node_modules", entry), join("node_modules", entry));
  }
  for (const { folder, name } of WORKSPACES) link(join(copy, folder), join("node_modules", name));
}

function link(to: string, from: string): void {
  mkdirSync(dirname(join(copy, from)), { recursive: true });
  symlinkSync(to, join(copy, from), "dir");
}
