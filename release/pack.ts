// Packs the packages, to install them elsewhere before they are published: `npm run pack`.
import { relative } from "node:path";
import { buildPackages, PACKAGES } from "./build-packages.ts";
import { packPackages } from "./pack-packages.ts";

const built = await buildPackages(PACKAGES);
const folders = built.map(({ folder }) => folder);
for (const { path } of await packPackages(folders, PACKAGES)) console.log(relative(process.cwd(), path));
