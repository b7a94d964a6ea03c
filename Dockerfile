# The command `continuity` in a container: docker build -t session-continuity . && docker run --rm --network host session-continuity check http://127.0.0.1:8080
FROM python:3.12-slim AS build
WORKDIR /source
COPY . .
RUN pip wheel --quiet --no-cache-dir --no-deps --wheel-dir /wheel .

FROM python:3.12-slim
COPY --from=build /wheel /wheel
RUN pip install --quiet --no-cache-dir /wheel/*.whl && rm -r /wheel && useradd --create-home continuity
USER continuity
# Reports are written here: docker run -v "$PWD:/work" … --report report
WORKDIR /work
ENTRYPOINT ["continuity"]
CMD ["--help"]
