# Everything a developer does, one recipe each; `just` alone lists them.

# List the recipes
default:
    @{{just_executable()}} --list --unsorted

# Install everything that is needed, tools included
setup:
    uv sync --all-groups

# Run the whole product on this machine; arguments go to `adloom up`
run *arguments:
    uv run adloom up {{arguments}}

# Format, then check style, types and import contracts
check:
    uv run ruff format && uv run ruff check --fix
    uv run basedpyright
    uv run lint-imports

# Run the tests; arguments go to pytest
test *arguments:
    uv run pytest {{arguments}}

# Run the tests that start no server, in about 2 minutes; arguments go to pytest
quick *arguments:
    uv run pytest --quick {{arguments}}

# Check the laws in many short simulated runs, on all cores; arguments go to `adloom simulate`
simulate *arguments:
    uv run adloom simulate ledger --runs 2000 {{arguments}}
    uv run adloom simulate budgets --runs 2000 {{arguments}}
    uv run adloom simulate contextual --runs 2000 {{arguments}}

# Check them on real processes that are killed, with 20 seeds; arguments go to pytest
chaos *arguments:
    ADLOOM_CHAOS_SEEDS=20 uv run pytest -n 1 -rP tests/chaos tests/chaos/budgets/test_budgets_under_attack.py {{arguments}}

# Kill and freeze workers that share the actors, as real processes; arguments are numbers of drills, or `short`
drills *arguments:
    uv run python -m bench.drills.run {{arguments}}

# Flood a small Valkey with the largest events for ten minutes; serving, counting and jobs have to go on
flood *arguments:
    ADLOOM_TEST_FLOOD_SECONDS=600 uv run pytest -rP tests/events/test_memory_flood.py {{arguments}}

# Fuzz both planes by their own description; arguments go to Schemathesis
fuzz *arguments:
    uv run python scripts/fuzz.py {{arguments}}

# Make clients from the API's description by generators, and lint it; needs Node.js
clients:
    uv run python scripts/clients.py

# Check the dashboards by Grafana's own types; needs Node.js
dashboards:
    uv run python scripts/dashboards.py

# Check the files of deploy/ by Kubernetes' own schemas and the Compose specification
manifests:
    uv run python scripts/manifests.py

# Measure the delivery plane, as ratios in one run; arguments go to `adloom bench`
bench *arguments:
    uv run adloom bench {{arguments}}

# Bring the database of DATABASE_URL to the newest schema
migrate *arguments:
    uv run adloom migrate {{arguments}}

# Write the exact version of every package into pyproject.toml; `--upgrade` looks for newer ones first
pin *arguments:
    uv run --no-sync python scripts/pin.py {{arguments}}

# Write requirements.txt with the hash of every file, for installations that check them
requirements:
    uv export --quiet --no-dev --no-emit-project --no-header --no-annotate --output-file requirements.txt

# Look for known vulnerabilities in what is installed with the product, and say what could not be looked up
audit *arguments:
    uv run --no-sync python scripts/audit.py {{arguments}}

# Take the pictures of the documentation again, with an installed Chromium
pictures:
    uv run python scripts/pictures.py
