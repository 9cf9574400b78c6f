import { join, relative } from "node:path";
import { expect, it } from "vitest";
import { folderName, PACKAGES } from "../../../release/build-packages.ts";
import { publishedManifest } from "../../../release/manifest.ts";
import { PUBLISHED_ROOMS } from "../../../release/workspaces.ts";
import { readText, root } from "../../rooms/repository.ts";

const source = {
  name: "@portico/core",
  version: "1.2.3",
  license: "MIT",
  files: ["dist"],
  imports: { "#main": "./src/cli/main.ts" },
  exports: { ".": "./src/index.ts", "./*": "./src/*/preset.ts", "./conformance/*": "./conformance/*.ts" },
  dependencies: { valibot: "^1.5.0" },
  devDependencies: { vitest: "^5.1.1" },
  publishConfig: { access: "public", directory: "../dist/packages/core" },
} as const;

it("a published package names compiled files where the workspace names sources, and nothing that only matters in the repository", () => {
  const { devDependencies: _, ...kept } = source;
  expect(publishedManifest(source, undefined)).toEqual({
    ...kept,
    files: ["dist", "bill-of-materials.cdx.json"],
    imports: { "#main": "./dist/cli/main.js" },
    exports: {
      ".": "./dist/index.js",
      "./*": "./dist/*/preset.js",
      "./conformance/*": "./dist/conformance/*.js",
      "./chunks/*": null,
    },
    publishConfig: { access: "public" },
  });
});

it("it names the repository that it is built in, for registries to check its provenance against", () => {
  const repository = { url: "git+https://host.example/somebody/portico.git", directory: "core" };
  expect(publishedManifest(source, repository)).toMatchObject({ repository: { type: "git", ...repository } });
  expect(publishedManifest(source, undefined)).not.toHaveProperty("repository");
});

it.each(PUBLISHED_ROOMS)("changesets publish %s from where a release is built", async (room) => {
  const { publishConfig } = JSON.parse(await readText(`${room}/package.json`)) as typeof source;
  expect(join(root, room, publishConfig.directory)).toBe(join(PACKAGES, folderName(room)));
  expect(relative(root, PACKAGES)).toBe("dist/packages");
});
