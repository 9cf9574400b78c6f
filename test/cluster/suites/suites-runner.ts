import { existsSync } from "node:fs";
import { join, relative } from "node:path";
import { type RunnerTestCase, type RunnerTestFile, type RunnerTestSuite, TestRunner } from "vitest";
import { MEMBER_SERVERS } from "../../harness/member-place.ts";
import { exceptions } from "./exceptions.ts";

const TESTS = join(import.meta.dirname, "../..");

/** Runs the suites on clusters: exceptions must fail, and an exception without a test is an error. */
export default class SuitesRunner extends TestRunner {
  onCollected(files: readonly RunnerTestFile[]): void {
    const hasServers = process.env[MEMBER_SERVERS.postgresUrl] !== undefined;
    for (const file of files) {
      if (hasServers) expectExceptions(file);
      else file.mode = "skip";
    }
  }
}

function expectExceptions(file: RunnerTestFile): void {
  const name = relative(join(TESTS, "spec"), file.filepath);
  for (const { title, twin, isByChance } of exceptions.filter((each) => each.file === name)) {
    const found = testsOf(file).filter((test) => title === undefined || test.fullTestName === title);
    if (found.length === 0) throw new Error(`No test has the title of an exception: ${title}`);
    if (twin !== undefined && !existsSync(join(TESTS, twin))) throw new Error(`No file has the name of a twin: ${twin}`);
    for (const test of found) {
      if (isByChance) test.mode = "skip";
      else test.fails = true;
    }
  }
}

function testsOf({ tasks }: RunnerTestSuite): readonly RunnerTestCase[] {
  return tasks.flatMap((task) => (task.type === "suite" ? testsOf(task) : [task]));
}
