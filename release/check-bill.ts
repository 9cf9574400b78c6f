import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { Ajv, type ValidateFunction } from "ajv";
import addFormats from "ajv-formats";
import type { BillOfMaterials } from "./bill-of-materials.ts";

/** The version of CycloneDX that `npm sbom` writes. */
const SCHEMA = "bom-1.5.SNAPSHOT.schema.json";
/** Schemas that it refers to. */
const OTHERS = ["spdx.SNAPSHOT.schema.json", "jsf-0.82.SNAPSHOT.schema.json"];

/**
 * All problems of a package's bill of materials, one line each: where it violates the schema of CycloneDX, direct production dependencies that
 * it does not list, development dependencies that it lists, and addresses of downloads, which name a registry.
 */
export async function checkBill(bill: BillOfMaterials, dependencies: readonly string[]): Promise<string[]> {
  const validate = await (validator ??= compile());
  validate(bill);
  const faults = (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath}: ${message}`);
  const { "bom-ref": own, name } = bill.metadata.component;
  const listed = new Set(bill.components.map((component) => nameIn(component["bom-ref"])));
  const direct = bill.dependencies.find(({ ref }) => ref === own)?.dependsOn.map(nameIn) ?? [];
  const missing = dependencies.filter((each) => !listed.has(each) || !direct.includes(each));
  const reachable = reachableFrom(own, bill);
  const unreachable = bill.components.filter((component) => !reachable.has(component["bom-ref"]));
  return [
    ...faults,
    ...missing.map((each) => `the dependency ${each} is missing`),
    ...unreachable.map((component) => `${component["bom-ref"]} is listed, and ${name} does not depend on it`),
    ...(/"type":"distribution"/.test(JSON.stringify(bill)) ? ["it names where packages were downloaded"] : []),
  ];
}

/** `@noble/hashes` of `@noble/hashes@2.4.0`. */
function nameIn(ref: string): string {
  return ref.slice(0, ref.indexOf("@", 1));
}

function reachableFrom(own: string, { dependencies }: BillOfMaterials): Set<string> {
  const targets = new Map(dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]));
  const reached = new Set<string>();
  const open = [own];
  for (let ref = open.pop(); ref !== undefined; ref = open.pop()) {
    if (reached.has(ref)) continue;
    reached.add(ref);
    open.push(...(targets.get(ref) ?? []));
  }
  return reached;
}

let validator: Promise<ValidateFunction> | undefined;

async function compile(): Promise<ValidateFunction> {
  const library = dirname(createRequire(import.meta.url).resolve("@cyclonedx/cyclonedx-library/package.json"));
  const read = async (file: string) => JSON.parse(await readFile(join(library, "res/schema", file), "utf8")) as object;
  // The schema has keywords of its own (`meta:enum`). Its international formats are not those of addresses that npm writes.
  const ajv = new Ajv({ strict: false, allErrors: true, formats: { "idn-email": /^[^@\s]+@[^@\s]+$/, "iri-reference": true } });
  addFormats.default(ajv);
  for (const file of OTHERS) ajv.addSchema(await read(file), `http://cyclonedx.org/schema/${file}`);
  return ajv.compile(await read(SCHEMA));
}
