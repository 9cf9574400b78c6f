import { beforeAll, describe, expect, it } from "vitest";
import { type BillOfMaterials, billOfMaterials, readLock } from "../../../release/bill-of-materials.ts";
import { checkBill } from "../../../release/check-bill.ts";
import { PUBLISHED_ROOMS } from "../../../release/workspaces.ts";
import { hasTools } from "../../harness/oracle.ts";
import { readText } from "../../rooms/repository.ts";

const isInstalled = hasTools("release", "Tests of bills of materials");

interface Manifest {
  readonly name: string;
  readonly dependencies: Readonly<Record<string, string>>;
}

const manifestOf = async (room: string) => JSON.parse(await readText(`${room}/package.json`)) as Manifest;
const bills = new Map<string, BillOfMaterials>();
beforeAll(async () => {
  const lock = await readLock();
  const made = PUBLISHED_ROOMS.map(async (room) => bills.set(room, await billOfMaterials((await manifestOf(room)).name, lock)));
  await Promise.all(made);
}, 120_000);

describe.skipIf(!isInstalled)("the bill of materials of a published package", () => {
  it.each(PUBLISHED_ROOMS)("is valid CycloneDX, and lists exactly what the package depends on: %s", async (room) => {
    const { name, dependencies } = await manifestOf(room);
    const bill = bills.get(room)!;
    expect(bill).toMatchObject({ bomFormat: "CycloneDX", specVersion: "1.5", metadata: { component: { name } } });
    expect(await checkBill(bill, Object.keys(dependencies))).toEqual([]);
    expect(bill.components.length).toBeGreaterThanOrEqual(Object.keys(dependencies).length);
  });

  it("has the hash and the license of each package of others", async () => {
    const { packages } = await readLock();
    // Files of another package's tarball, which has the hash.
    const bundled = Object.keys(packages).filter((path) => "inBundle" in packages[path]!);
    const others = bills
      .get("presets/cli")!
      .components.filter(
        ({ name }) => !/^(?:@portico\/|portico$)/.test(name) && !bundled.some((path) => path.endsWith(`/${name}`)),
      );
    expect(others.length).toBeGreaterThan(100);
    expect(others.filter((each) => !("hashes" in each && "licenses" in each)).map(({ name }) => name)).toEqual([]);
  });

  it("names no host of a registry, and no tool that only this repository uses", () => {
    const text = JSON.stringify([...bills.values()]);
    expect([...new Set(text.match(/https?:\/\/[^/"]+/g))]).toEqual(["http://cyclonedx.org"]);
    for (const tool of ["vitest", "typescript", "oxlint"])
      expect(bills.get("presets/cli")!.components.map(({ name }) => name)).not.toContain(tool);
  });

  it("has the presets without the command line, for hosts that embed them", () => {
    const names = (room: string) => bills.get(room)!.components.map(({ name }) => name);
    const ofCommandLine = ["citty", "listhen", "modern-tar", "pretty-ms"];
    expect(names("presets/cli")).toEqual(expect.arrayContaining(["@portico/presets", ...ofCommandLine]));
    for (const name of ["portico", ...ofCommandLine]) expect(names("presets")).not.toContain(name);
  });

  it("has the presets without a driver of a cluster, QuickJS and the console", () => {
    const names = (room: string) => bills.get(room)!.components.map(({ name }) => name);
    const annexes = ["@portico/cluster", "@portico/console", "@portico/workflow-nodes"];
    const clouds = ["@portico/clouds", "@smithy/signature-v4", "@aws-sdk/credential-provider-node", "google-auth-library"];
    const ofAnnexes = ["pg", "ioredis", "bullmq", "aws4fetch", "quickjs-emscripten-core", "jsonata"];
    expect(names("presets/cli")).toEqual(expect.arrayContaining([...annexes, ...ofAnnexes]));
    for (const name of clouds) expect(names("presets/cli")).not.toContain(name);
    for (const name of [...clouds, ...annexes, ...ofAnnexes]) expect(names("presets")).not.toContain(name);
  });
});

describe.skipIf(!isInstalled)("a bill of materials is refused", () => {
  const client = () => structuredClone(bills.get("client")!) as any;
  const dependencies = async () => Object.keys((await manifestOf("client")).dependencies);

  it("that violates the schema of CycloneDX", async () => {
    const bill = client();
    bill.components[0].type = "gadget";
    expect(await checkBill(bill, await dependencies())).toContain(
      "/components/0/type: must be equal to one of the allowed values",
    );
  });

  it("that misses a production dependency", async () => {
    const [first] = await dependencies();
    const bill = client();
    bill.components = bill.components.filter(({ name }: { name: string }) => name !== first);
    expect(await checkBill(bill, await dependencies())).toContain(`the dependency ${first} is missing`);
  });

  it("that lists a package that nothing in it depends on", async () => {
    const bill = client();
    bill.components.push({ "bom-ref": "vitest@5.1.1", type: "library", name: "vitest", version: "5.1.1" });
    expect(await checkBill(bill, await dependencies())).toEqual([
      "vitest@5.1.1 is listed, and @portico/client does not depend on it",
    ]);
  });

  it("that names an address of a download", async () => {
    const bill = client();
    bill.components[0].externalReferences.push({ type: "distribution", url: "https://packages.example/a.tgz" });
    expect(await checkBill(bill, await dependencies())).toEqual(["it names where packages were downloaded"]);
  });
});
