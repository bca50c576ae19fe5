/** Chromium for the tests of the report page: the one that is there, else Debian's, installed as root. */
import { existsSync } from 'node:fs';

const chromiumPath = '/usr/bin/chromium';

export async function installBrowser(world: {
  readonly say: (line: string) => void;
  readonly installDebianPackages: (packages: readonly string[], say: (line: string) => void) => Promise<void>;
}): Promise<void> {
  if (existsSync(chromiumPath)) return;
  world.say('Installing Chromium for the tests of the report page (Debian package)');
  await world.installDebianPackages(['chromium'], world.say);
}
