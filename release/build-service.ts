// Builds the packages of a service into `dist/packages`, for the container image: `node release/build-service.ts`.
import { buildPackages, PACKAGES, SERVICE } from "./build-packages.ts";

await buildPackages(PACKAGES, SERVICE);
