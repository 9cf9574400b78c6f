import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { exceptions, opensItself } from "../cluster/suites/exceptions.ts";
import { suiteFiles } from "../cluster/suites/on-cluster.ts";

it("every file of the areas' suites that opens services runs on a cluster, or has a reason why it does not", () => {
  expect(opensItself.map(({ file }) => `spec/${file}`)).toEqual(suiteFiles().itself);
});

it("the files that exceptions name exist", () => {
  const named = [...exceptions, ...opensItself].flatMap(({ file, twin }) => [`spec/${file}`, ...(twin ? [twin] : [])]);
  expect(named.filter((file) => !existsSync(join(import.meta.dirname, "..", file)))).toEqual([]);
});
