import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as v from "valibot";
import { parse, parseAllDocuments } from "yaml";

/** An object of Kubernetes, as a manifest has it. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Readonly<Record<string, string>> };
  readonly [key: string]: any;
}

const generator = v.strictObject({
  name: v.string(),
  behavior: v.optional(v.literal("merge")),
  files: v.optional(v.array(v.string()), []),
  literals: v.optional(v.array(v.string()), []),
  envs: v.optional(v.array(v.string()), []),
});
/** The fields of a kustomization that this renderer knows. It refuses all others. */
const kustomization = v.strictObject({
  apiVersion: v.literal("kustomize.config.k8s.io/v1beta1"),
  kind: v.literal("Kustomization"),
  namespace: v.optional(v.string()),
  resources: v.array(v.string()),
  images: v.optional(v.array(v.strictObject({ name: v.string(), newName: v.string(), newTag: v.string() })), []),
  replicas: v.optional(v.array(v.strictObject({ name: v.string(), count: v.number() })), []),
  configMapGenerator: v.optional(v.array(generator), []),
  secretGenerator: v.optional(v.array(generator), []),
});

/** Whether this machine has a kubectl with a kustomize of version 4.1 or newer. Debian's kubectl is older. */
export function hasKustomize(): boolean {
  const { stdout } = spawnSync("kubectl", ["version", "--client"], { encoding: "utf8" });
  const [, major = "0"] = /^Kustomize Version: v(\d+)\./m.exec(stdout ?? "") ?? [];
  return Number(major) >= 5;
}

/** Render with `kubectl kustomize`. Names of generated objects come without the hash of their contents. */
export function kubectlKustomize(folder: string): Manifest[] {
  const text = execFileSync("kubectl", ["kustomize", folder], { encoding: "utf8" });
  const generated = [...text.matchAll(/^kind: (?:ConfigMap|Secret)\nmetadata:\n {2}name: (\S+)-(\w{10})$/gm)];
  const objects = readManifests(generated.reduce((done, [, name, hash]) => done.replaceAll(`${name}-${hash}`, name!), text));
  // kubectl breaks the lines of long values.
  for (const { kind, data } of objects)
    if (kind === "Secret") for (const key of Object.keys(data)) data[key] = data[key].replaceAll("\n", "");
  return objects;
}

/** Render a kustomization without kubectl: the fields that the manifests of this repository use, and no others. */
export function renderKustomization(folder: string): Manifest[] {
  const given = v.parse(kustomization, parse(readFileSync(join(folder, "kustomization.yaml"), "utf8")));
  const objects = given.resources.flatMap((resource) =>
    resource.endsWith(".yaml")
      ? readManifests(readFileSync(join(folder, resource), "utf8"))
      : renderKustomization(join(folder, resource)),
  );
  for (const [kind, generators] of [
    ["ConfigMap", given.configMapGenerator] as const,
    ["Secret", given.secretGenerator] as const,
  ]) {
    for (const each of generators) {
      const data = dataOf(each, folder, (text) => (kind === "Secret" ? Buffer.from(text).toString("base64") : text));
      const earlier = objects.find((object) => object.kind === kind && object.metadata.name === each.name);
      if ((each.behavior === "merge") !== (earlier !== undefined)) throw new Error(`${kind} ${each.name}: wrong behavior`);
      if (earlier) Object.assign(earlier["data"], data);
      else
        objects.push({
          apiVersion: "v1",
          kind,
          metadata: { name: each.name },
          data,
          ...(kind === "Secret" && { type: "Opaque" }),
        });
    }
  }
  for (const object of objects as Writable[]) {
    if (given.namespace !== undefined && object.kind !== "Namespace") object.metadata.namespace = given.namespace;
    const replicas = given.replicas.find(({ name }) => object.kind === "Deployment" && name === object.metadata.name);
    if (replicas) object.spec.replicas = replicas.count;
    for (const container of object.spec?.template?.spec?.containers ?? []) {
      const image = given.images.find(({ name }) => name === container.image);
      if (image) container.image = `${image.newName}:${image.newTag}`;
    }
  }
  return objects;
}

interface Writable {
  kind: string;
  metadata: { name: string; namespace?: string };
  spec?: any;
}

function dataOf({ files, literals, envs }: v.InferOutput<typeof generator>, folder: string, encode: (text: string) => string) {
  const lines = envs.flatMap((file) => readFileSync(join(folder, file), "utf8").split("\n"));
  const pairs = [...literals, ...lines.filter((line) => line !== "" && !line.startsWith("#"))].map((line) => {
    const at = line.indexOf("=");
    return [line.slice(0, at), encode(line.slice(at + 1))] as const;
  });
  const wholes = files.map((file) => [file, encode(readFileSync(join(folder, file), "utf8"))] as const);
  return Object.fromEntries([...pairs, ...wholes]);
}

function readManifests(text: string): Manifest[] {
  return parseAllDocuments(text).map((document) => document.toJS() as Manifest);
}
